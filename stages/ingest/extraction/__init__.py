"""The main text of a page: Ingot's block classifier, or a maintained extractor of others."""

from stages.ingest.extraction.main_text import LABELS, MainText, Span, extract
from stages.ingest.extraction.nesting import PageTooLarge

__all__ = ["LABELS", "MainText", "PageTooLarge", "Span", "extract"]
