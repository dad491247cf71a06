"""Estimators with scikit-learn's interface. Only this package imports sklearn.base."""
