import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "hello" in m:
        answer = {"ready": {"protocol": 1}}
    else:
        try:
            order = json.loads(m["value"])
            answer = {"id": m["id"], "result": "ok",
                      "reply": json.dumps({"confirmed": order["id"]})}
        except (KeyError, ValueError) as e:
            answer = {"id": m["id"], "result": "dead", "reason": f"bad order: {e}"}
    print(json.dumps(answer), flush=True)
