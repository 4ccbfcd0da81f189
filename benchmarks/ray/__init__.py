"""What a cluster costs where one machine would do."""
