"""Images: decoding, resizing, normalizing, colors."""
