"""The paper's tabular study, on the deep learner's equations with tables for networks."""
