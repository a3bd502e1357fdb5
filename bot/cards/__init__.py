"""What is shown, free of any platform."""
