"""Networks on 8-bit integers: which layers become integer ones, and how these compute."""
