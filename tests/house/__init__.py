"""Tests of the repository as a whole: its rooms, its documents, its examples, and which tests may be skipped."""
