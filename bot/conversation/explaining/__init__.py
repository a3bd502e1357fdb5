"""What a question about a conversation is answered with: what its own documents say, and nothing else.

A question decides nothing. One that no document answers is left to be answered with where the conversation stands.
"""

from bot.conversation.explaining.answer import explain, explain_runners, queues_asked
from bot.conversation.explaining.known import Known

__all__ = ["Known", "explain", "explain_runners", "queues_asked"]
