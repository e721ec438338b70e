print("fits")
