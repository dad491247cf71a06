"""Sampling: small SVMs on balls around points where classes meet."""
