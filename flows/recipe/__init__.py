"""Recipes: a DAG of steps in YAML, validated whole, planned against a store and run; no Prefect."""
