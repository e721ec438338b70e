print("tides")
