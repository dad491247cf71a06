"""How space is cut into cells: trees of half-spaces, grown on rows and routed the same way."""
