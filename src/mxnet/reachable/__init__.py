"""What programs reach although nobody promised it: `table` lists it, `finder` leads to it."""
