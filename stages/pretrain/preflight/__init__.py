"""What can be known of a pretraining run before its first step: what it needs, and what fails."""
