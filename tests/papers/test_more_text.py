"""Prose out of pages and plain text."""

from __future__ import annotations

import gzip

from papers.more_text import paragraphs_of_html, paragraphs_of_text, write_documents

PAGE = """<html><head><title>Not this, it is a title of a page.</title></head><body>
<h1>Neither this: it is a heading of the page.</h1>
<p>This is a <em>paragraph</em> of   seven words.</p>
<pre>This is code and no prose, so it is left out.</pre>
<ul><li>An item of a list, with <code>code</code> in it.</li><li>Too short.</li></ul>
<table><tr><td><p>A paragraph in a table is left out too.</p></td></tr></table>
</body></html>"""


def test_paragraphs_of_a_page_are_its_prose():
    assert list(paragraphs_of_html(PAGE)) == [
        "This is a paragraph of seven words.",
        "An item of a list, with code in it.",
    ]


def test_a_long_paragraph_ends_with_a_sentence():
    text = "A heading\n\n" + "This sentence has six words exactly. " * 20
    found = list(paragraphs_of_text(text))
    assert [len(one.split()) for one in found] == [102, 18]
    assert all(one.endswith("exactly.") for one in found)


def test_documents_leave_out_what_came_before(tmp_path):
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    words = write_documents("x", sorted(tmp_path.glob("*.html")), tmp_path / "x.txt.gz")
    with gzip.open(tmp_path / "x.txt.gz", "rt", encoding="utf-8") as stream:
        assert stream.read().splitlines()[:3] == ["= x / a.html 0 =", *paragraphs_of_html(PAGE)]
    assert words == 16
