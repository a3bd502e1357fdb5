"""Where runs compute. Each engine submits, tells the state and cancels; the run folder holds the truth."""
