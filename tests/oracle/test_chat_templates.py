"""The template language against transformers' own environment: for every
template the same text, or an error in both."""

import random

import chat_template_cases as cases
import pytest
from chat_template_oracle import (
    SHARE, ask, check, difference, official_plain)


def check_plain(templates, context):
    templates = list(templates)
    answers = ask([{"template": t, "context": context} for t in templates])
    check((difference(template, *official_plain(template, context), answer)
           for template, answer in zip(templates, answers)), len(templates))


def sample(templates, share=None):
    templates = list(templates)
    count = max(1, int(len(templates) * (SHARE if share is None else share)))
    return random.Random(7).sample(templates, min(count, len(templates)))


def test_snippets():
    assert len(cases.SNIPPETS) > 200
    check_plain(cases.SNIPPETS, cases.CONTEXT)


def test_white_space():
    check_plain(cases.whitespace_templates(), cases.CONTEXT)


def test_filters_tests_methods_and_slices():
    check_plain(sample(cases.table_templates()), cases.CONTEXT)


def test_operators():
    check_plain(sample(cases.operator_templates(), SHARE / 4), cases.CONTEXT)


def test_random_programs():
    check_plain(cases.program_templates(int(4000 * SHARE)), cases.CONTEXT)


def test_layout_filters():
    check_plain(cases.LayoutMaker(1).templates(int(2000 * SHARE)),
                cases.CONTEXT)


@pytest.mark.slow
def test_many_layouts():
    check_plain(cases.LayoutMaker(2).templates(4000), cases.CONTEXT)


@pytest.mark.slow
def test_all_tables():
    check_plain(cases.table_templates(), cases.CONTEXT)


@pytest.mark.slow
def test_all_operators():
    check_plain(cases.operator_templates(), cases.CONTEXT)


@pytest.mark.slow
def test_many_random_programs():
    check_plain(cases.program_templates(20000, seed=2), cases.CONTEXT)


def test_template_messages_are_carried():
    """A rejection carries the template's own message, with its place."""
    answer, = ask([{"template": "a\n  {{ raise_exception('Roles: ' ~ 7) }}",
                    "context": {}}])
    assert answer["reason"] == "Roles: 7"
    assert (answer["line"], answer["column"]) == (2, 21)
