"""Getting engines and documents from where they are published."""
