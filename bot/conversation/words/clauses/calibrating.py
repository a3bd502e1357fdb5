"""Calibration data."""

from __future__ import annotations

from bot.conversation.words import names, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_CALIBRATION = PhraseBook("calibration", "calib", "calibrate")
_SAMPLES = PhraseBook(
    *("num_calib_data", "num_calib_samples", "number of samples", "number of calibration samples", "samples"),
    *("calibration samples", "calib samples", "calibration data", "calibration size", "calibration data size"),
    *("calibration sample count", "calibration sequences", "calibration examples", "calibration", "calib", "calibrate"),
)
_COUNTED = PhraseBook(
    *("samples", "sample", "calibration samples", "calib samples", "calibration examples", "calibration sequences"),
    *("samples for calibration", "samples of calibration data", "calibration data", "calibration"),
)
_SEQ_LEN = PhraseBook(
    *("seq_len", "seq len", "seqlen", "seq length", "seq_length", "sequence length", "sequence_length", "sequence len"),
    *("sample length", "calibration length", "length"),
)
_TOKENS = PhraseBook("tokens", "tokens each", "tokens per sample", "token samples", "token sequences")
_BATCH = PhraseBook("batch size", "batch_size", "batchsize", "batch", "bs")
_DATASET = PhraseBook("dataset", "data set", "calibration dataset", "calib dataset", "calibration data set")
_FROM = PhraseBook("on", "from", "with", "of", "using")
_USES = frozenset({"on", "from", "with", "of", "using"})
_OF = PhraseBook("of", "from", "with")
_ON = PhraseBook("on")
_CALIBRATE_ON = PhraseBook("calibrate on", "calibrate with", "calibrate using", "calibration on", "calibration with")
_DATA_WORD = PhraseBook(
    *("dataset", "data set", "data", "for calibration", "for calibrating", "for the calibration", "to calibrate"),
    *("as calibration data", "as calibration dataset", "as the calibration dataset", "as dataset", "as the dataset"),
)


def calibration(cursor: Cursor, gathered: Gathered) -> bool:
    """Number and length of samples, batch size, dataset."""
    start = cursor.at
    for reading in (_length, _batch, _dataset, _calibrated_on, _counted, _samples):
        if reading(cursor, gathered):
            return True
        cursor.at = start
    return False


def _length(cursor: Cursor, gathered: Gathered) -> bool:
    """ "seq_len 1024", "1024 tokens"."""
    count = values.number(cursor)
    if count is not None:
        return cursor.takes(_TOKENS) and gathered.calibrate("seq_len", count)
    if not _takes_field(cursor, _SEQ_LEN):
        return False
    count = _new_value(cursor)
    if count is None:
        return False
    cursor.takes(_TOKENS)
    return gathered.calibrate("seq_len", count)


def _batch(cursor: Cursor, gathered: Gathered) -> bool:
    """ "batch size 4"."""
    count = _new_value(cursor) if _takes_field(cursor, _BATCH) else None
    return count is not None and gathered.calibrate("batch_size", count)


def _dataset(cursor: Cursor, gathered: Gathered) -> bool:
    """ "dataset pileval", "pileval", "on pileval"."""
    named = cursor.takes(_DATASET)
    if named:
        cursor.equals()
    elif not cursor.moves:
        cursor.takes(_FROM)
    else:
        return False
    name = names.dataset(cursor, named, used=cursor.headed or cursor.before in _USES)
    if name is None:
        return False
    cursor.takes(_DATA_WORD)
    return gathered.calibrate("dataset", name)


def _calibrated_on(cursor: Cursor, gathered: Gathered) -> bool:
    """ "calibrate on pileval"."""
    return cursor.takes(_CALIBRATE_ON) and _dataset(cursor, gathered)


def _counted(cursor: Cursor, gathered: Gathered) -> bool:
    """ "256 calibration samples", "256 samples of pileval"."""
    count = values.count(cursor)
    if count is None or not cursor.takes(_COUNTED):
        return False
    gathered.calibrate("num_calib_data", count)
    return _more_of_them(cursor, gathered)


def _samples(cursor: Cursor, gathered: Gathered) -> bool:
    """ "calibration 256", "increase calibration to 256", "calibrate with 256 samples"."""
    if not cursor.takes(_SAMPLES):
        return False
    cursor.takes(_ON)
    count = _new_value(cursor)
    if count is None:
        count = values.count(cursor)
    if count is None:
        return False
    cursor.takes(_COUNTED)
    gathered.calibrate("num_calib_data", count)
    return _more_of_them(cursor, gathered)


def _more_of_them(cursor: Cursor, gathered: Gathered) -> bool:
    """What may follow a number of samples: "of 1024 tokens", "from pileval"."""
    behind = cursor.at
    if cursor.takes(_OF):
        start = cursor.at
        if _length(cursor, gathered):
            return True
        cursor.at = start
        if _dataset(cursor, gathered):
            return True
        cursor.at = behind
    return True


def _takes_field(cursor: Cursor, field: PhraseBook) -> bool:
    """A field's name, with "calibration" in front or not."""
    if cursor.takes(field):
        return True
    return cursor.takes(_CALIBRATION) and cursor.takes(field)


def _new_value(cursor: Cursor) -> int | None:
    if (count := values.new_number(cursor)) is not None:
        return count
    cursor.equals()
    return values.number(cursor)
