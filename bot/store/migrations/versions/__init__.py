"""One module for each revision. `database.REVISIONS` lists them."""
