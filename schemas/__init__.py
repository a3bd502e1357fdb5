"""What the parts say to each other: the documents of the workflow, the catalogue, runs and the API."""
