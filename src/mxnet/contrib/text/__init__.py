"""Words as numbers: counting tokens, vocabularies, embeddings."""
from . import embedding, utils, vocab
