"""The workflow as a pure state machine; words and clicks to commands; who may decide what."""
