def main():
    print("heat")
