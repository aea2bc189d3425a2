"""Xapian on the same texts and requests, if its Python binding is installed.

usage: xapian_peer.py WORK_DIR

WORK_DIR contains texts.jsonl ({"id", "text"} per line) and requests.json ({kind: [text, …]}). Prints one JSON object: the
seconds of indexing, and the seconds of each request by kind. Requests are ORs of stemmed words, ranked by BM25, top 20.
"""

import json
import sys
import time
from pathlib import Path

import xapian

BEST = 20


def index(work: Path) -> float:
    """Writes the database; returns the elapsed seconds."""
    seconds = 0.0
    database = xapian.WritableDatabase(str(work / "xapian"), xapian.DB_CREATE_OR_OVERWRITE)
    generator = xapian.TermGenerator()
    generator.set_stemmer(xapian.Stem("english"))
    with (work / "texts.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)
            start = time.perf_counter()
            document = xapian.Document()
            document.set_data(text["id"])
            generator.set_document(document)
            generator.index_text_without_positions(text["text"])
            database.add_document(document)
            seconds += time.perf_counter() - start
    start = time.perf_counter()
    database.commit()
    database.close()
    return seconds + time.perf_counter() - start


def search(work: Path, requests: list[str]) -> list[float]:
    """Runs the requests sequentially; returns the seconds of each."""
    database = xapian.Database(str(work / "xapian"))
    parser = xapian.QueryParser()
    parser.set_stemmer(xapian.Stem("english"))
    parser.set_stemming_strategy(xapian.QueryParser.STEM_SOME)
    parser.set_default_op(xapian.Query.OP_OR)
    parser.set_database(database)
    seconds = []
    for request in requests:
        start = time.perf_counter()
        enquire = xapian.Enquire(database)
        enquire.set_weighting_scheme(xapian.BM25Weight(1.2, 0, 1, 0.75, 0.5))
        enquire.set_query(parser.parse_query(request, 0))
        for match in enquire.get_mset(0, BEST):
            match.document.get_data()
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    work = Path(sys.argv[1])
    requests = json.loads((work / "requests.json").read_text(encoding="utf-8"))
    found = {"indexing": index(work), "requests": {kind: search(work, texts) for kind, texts in requests.items()}}
    json.dump(found, sys.stdout)


main()
