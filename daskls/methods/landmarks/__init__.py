"""Landmarks: one linear SVM on kernel features of landmarks."""
