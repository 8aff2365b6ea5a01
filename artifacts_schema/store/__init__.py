"""The store: one fsspec URL that holds every artifact, its payload, running work and refs."""

from artifacts_schema.store.store import Ref, Store, WorkState

__all__ = ["Ref", "Store", "WorkState"]
