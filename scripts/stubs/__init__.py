"""Parts of `make_stubs.py`.

``writer``
    A stub file: its imports and its lines.
``operators``
    Functions and methods out of the operator registry.
``inspected``
    Functions and methods written by hand: signatures and annotations from their source.
``modules``
    Which stub files there are, and what stands in them.
"""
