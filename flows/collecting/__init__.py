"""Preferences that people give: answers sampled from a model, ranked blind, written as pairs."""
