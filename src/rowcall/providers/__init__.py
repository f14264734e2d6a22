"""How the APIs are spoken to: requests built, replies read, nothing sent."""
