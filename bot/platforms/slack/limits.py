"""What Slack takes, once for everything. Characters, unless said otherwise; one beyond the basic plane counts twice.

Source: Slack's reference of Block Kit. No limit of a whole message is published; refusals are reported from 11,000
characters on, so that half of it is the most that is sent.
"""

from __future__ import annotations

from typing import Final

MESSAGE: Final = 5_500
BLOCKS: Final = 40  # of the 50 that a message may have
ALTERNATIVE: Final = 600  # of the 4,000 of `text`: it says the whole in one line, and its escapes count
HEADER: Final = 150
SECTION: Final = 3_000

ROWS: Final = 100
COLUMNS: Final = 20
TABLES: Final = 1  # as Slack's own: more of them in one message are refused by some workspaces
CELL: Final = 400

BUTTONS: Final = 25
BUTTON: Final = 75
BUTTON_VALUE: Final = 2_000
ACTION_ID: Final = 255
BLOCK_ID: Final = 255
CONFIRM_TITLE: Final = 100
CONFIRM_TEXT: Final = 300
CONFIRM_BUTTON: Final = 30
ACTIONS: Final = 2_500  # of a message for all its buttons and their questions

TASK: Final = 250

VIEW_BLOCKS: Final = 100
VIEW_BYTES: Final = 240_000  # of 250,000
VIEW_TITLE: Final = 24
METADATA: Final = 3_000
LABEL: Final = 200  # of 2,000
HINT: Final = 300  # of 2,000
PLACEHOLDER: Final = 150
INPUT: Final = 3_000
OPTIONS: Final = 100
GROUPS: Final = 100
OPTION_TEXT: Final = 75
OPTION_VALUE: Final = 75
FIELD_ERROR: Final = 300
