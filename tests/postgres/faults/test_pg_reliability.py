"""R1, R3, R4, R6, R7 and R9 with the store in PostgreSQL: the tests are those of a file."""

from __future__ import annotations

import pytest
from test_r01_kills import test_a_thousand_kills, test_twenty_kills_in_a_row, test_two_kills
from test_r03_claims import test_no_claim_twice_and_none_missing
from test_r04_stopped import test_stopped_past_its_lease
from test_r06_edits import test_edited_in_every_state
from test_r07_outages import test_gone_for_a_moment
from test_r09_rate_limits import (
    test_a_long_wait_outlives_the_run,
    test_a_rate_is_not_exceeded,
    test_a_storm_over_three_processes,
    test_every_form,
    test_one_second_costs_one_to_two,
)
from test_two_processes import test_the_other_one_takes_over, test_two_requests_do_not_mix

pytestmark = pytest.mark.postgres

__all__ = [
    "test_a_long_wait_outlives_the_run",
    "test_a_rate_is_not_exceeded",
    "test_a_storm_over_three_processes",
    "test_a_thousand_kills",
    "test_edited_in_every_state",
    "test_every_form",
    "test_gone_for_a_moment",
    "test_no_claim_twice_and_none_missing",
    "test_one_second_costs_one_to_two",
    "test_stopped_past_its_lease",
    "test_the_other_one_takes_over",
    "test_twenty_kills_in_a_row",
    "test_two_kills",
    "test_two_requests_do_not_mix",
]
