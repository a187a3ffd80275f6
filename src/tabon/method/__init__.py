"""The paper in its order: sets (eq. 1), distances (2-5), transitions (6), bank (7), scores (8-12)."""
