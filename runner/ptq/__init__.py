"""Self-contained programs for the quantization interpreter; the only place that may import the engine."""
