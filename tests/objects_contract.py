"""What every store of objects promises: a class of tests, which a kind's own tests inherit."""
