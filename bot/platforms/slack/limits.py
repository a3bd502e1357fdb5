"""What Slack takes, once for everything. Characters, unless said otherwise.

Source: Slack's reference of Block Kit. No limit of a whole message is published; refusals are reported from 11,000 on.
"""

from __future__ import annotations

from typing import Final

MESSAGE: Final = 5_500
BLOCKS: Final = 40
ALTERNATIVE: Final = 3_500
HEADER: Final = 150
TEXT: Final = 3_000
ROWS: Final = 100
COLUMNS: Final = 20
TABLE: Final = 4_000
CELL: Final = 400
BUTTONS: Final = 25
BUTTON: Final = 75
VALUE: Final = 2_000
CONFIRM_TITLE: Final = 100
CONFIRM: Final = 300
CONFIRM_BUTTON: Final = 30
TASK_TITLE: Final = 250
