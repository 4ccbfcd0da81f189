"""What polymux adds in front of a server of somebody else."""
