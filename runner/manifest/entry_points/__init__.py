"""One module per program that quantizes: which flags it has, and how a plan becomes its argument list."""
