"""A request, an analysis and the catalogue to a quantization plan with reasons and findings."""
