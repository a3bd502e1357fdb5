"""What every noun of a transaction stands on."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session


class Transaction:
    """One transaction, in the thread that runs it. `now` is the time at which it began."""

    def __init__(self, session: Session, now: datetime) -> None:
        self._session = session
        self.now = now


class Changing(Transaction):
    """A transaction of the writer. `touched` collects the conversations that it changed, for those who wait."""

    def __init__(self, session: Session, now: datetime) -> None:
        super().__init__(session, now)
        self.touched: set[int] = set()
