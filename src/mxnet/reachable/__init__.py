"""Compatibility with undocumented paths and names of MXNet that programs use: `table` lists them, `finder` resolves them."""
