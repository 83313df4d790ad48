"""Lines for the user of a run that is under way."""

from launch.terminal import say

note = say
