"""How a training run goes, for people: speed, memory, dashboards, alerts. Never hashed, never read
by what is trained: a run without any of it has the same bytes."""
