"""The main text of a page: Ingot's block classifier, or a maintained extractor of others."""

from stages.ingest.extraction.errors import PageTooLarge
from stages.ingest.extraction.main_text import ExtractionRules, MainText, extract
from stages.ingest.extraction.render import LABELS, Span

__all__ = ["LABELS", "ExtractionRules", "MainText", "PageTooLarge", "Span", "extract"]
