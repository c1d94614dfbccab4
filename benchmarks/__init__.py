"""What the engine's speed is held against, and what the project itself does without."""
