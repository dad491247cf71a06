"""scikit-learn's estimator interface over the graphs. The only importer of sklearn.base."""
