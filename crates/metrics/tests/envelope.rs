//! The stored form of the envelope, and what reading it rejects.

use arbor_metrics::{Envelope, Machine, Measurement, ProcessUsage, SCHEMA, Versions};
use serde_json::json;

fn example() -> Envelope {
    let settings = json!({ "db": "db", "memory": 2_147_483_648_u64, "threads": 2 });
    Envelope {
        schema: SCHEMA.to_owned(),
        command: "replay".to_owned(),
        versions: Versions {
            arbor: "0.1.0".to_owned(),
            commit: Some("0123456789ab".to_owned()),
            rustc: Some("rustc 1.95.0".to_owned()),
        },
        machine: Machine {
            cpu: Some("Example CPU".to_owned()),
            cores: Some(2),
            memory_bytes: Some(25_769_803_776),
            simd: vec!["avx2".to_owned(), "sha_ni".to_owned()],
            os: "Linux 6.1.0".to_owned(),
            arch: "x86_64".to_owned(),
        },
        settings: settings.as_object().expect("an object").clone(),
        results: json!({ "blocks": 2500 }),
        started: "2026-11-21T06:35:00Z".to_owned(),
        wall_seconds: 1.5,
        process: ProcessUsage {
            user_s: Some(2.25),
            sys_s: Some(0.5),
            peak_rss_bytes: Some(1_048_576),
            read_bytes: Some(0),
            written_bytes: None,
        },
    }
}

/// `report` and readers outside the project depend on these names: change them with the schema's version.
#[test]
fn stored_form_is_stable() {
    insta::assert_json_snapshot!(example());
}

#[test]
fn what_is_written_is_read_back() {
    let text = example().to_text().expect("JSON");
    assert!(text.ends_with("}\n"), "{text}");
    assert_eq!(Envelope::from_text(&text).expect("read"), example());
}

#[test]
fn other_schemas_and_other_texts_are_rejected() {
    for (text, reason) in [
        (r#"{"schema":"arboretum/2"}"#, "schema arboretum/2"),
        (r#"{"command":"replay"}"#, "no schema"),
        (r#"{"schema":"arboretum/1"}"#, "missing field"),
        ("{", "EOF"),
    ] {
        let error = Envelope::from_text(text).expect_err("not an envelope");
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_measurement_carries_its_settings_and_times() {
    let mut run = Measurement::start("replay", Versions::default());
    run.setting("threads", 1);
    run.setting("threads", 2);
    let envelope = run.finish(json!(null));
    assert_eq!(envelope.schema, SCHEMA);
    assert_eq!(envelope.settings["threads"], 2);
    assert!(envelope.wall_seconds >= 0.0);
    assert!(envelope.started.starts_with("20") && envelope.started.ends_with('Z'));
    assert!(envelope.machine.cores.is_some());
}
