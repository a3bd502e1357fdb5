"""Model source, configuration and tensor headers to a model analysis. Weights are never read."""
