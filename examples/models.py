"""Python types as definitions: ``structgen compile examples.models:Recipe`` compiles the first.

With `extra="forbid"` Pydantic's schemas say ``additionalProperties: false``; otherwise a model may add members of its
own, which is valid and rarely wanted.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Ingredient(BaseModel):
    """One line of a shopping list."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=20)
    grams: int = Field(ge=1, le=5000)
    allergen: bool = False


class Recipe(BaseModel):
    """What a model that reads cookbooks should return."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(max_length=40)
    difficulty: Literal["easy", "medium", "hard"]
    minutes: int | None = Field(ge=5, le=600)
    ingredients: list[Ingredient] = Field(min_length=1, max_length=4)


def book_table(
    name: Annotated[str, Field(max_length=20)],
    guests: Annotated[int, Field(ge=1, le=12)],
    day: date,
    inside: bool = True,
) -> str:
    """Book a table: a tool whose parameters are the definition."""
    return f"A table for {guests}, {'inside' if inside else 'outside'}, on {day:%d %B}, for {name}."
