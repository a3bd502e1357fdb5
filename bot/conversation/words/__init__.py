"""Reading what people write: what a sentence means at a checkpoint."""

from bot.conversation.words.understand import Intent, Understood, as_json, understand
from bot.conversation.words.vocabulary import PUBLISHED, Vocabulary, vocabulary_of

__all__ = ["PUBLISHED", "Intent", "Understood", "Vocabulary", "as_json", "understand", "vocabulary_of"]
