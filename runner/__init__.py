"""Everything that touches the GPU host: facts, analysis, plans, commands, supervised runs, and the API over them."""
